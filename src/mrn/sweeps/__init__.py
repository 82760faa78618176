"""Many runs: suites of them, their statistics, figures and report."""
