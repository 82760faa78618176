"""Speed: side by side with a peer, and with what the machine can do at all."""
