"""Small studies that check the paper's claims: its toy example and its theory."""
