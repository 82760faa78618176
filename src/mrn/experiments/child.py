"""`mrn` in a process of a sweep: it saves and ends when the sweep does, however that ends."""

import signal

from mrn.cli import main
from mrn.signals import end_with_parent

if __name__ == "__main__":
    end_with_parent(signal.SIGTERM)
    main()
