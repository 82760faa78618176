"""Small studies that test the paper's claims: toy example, theory and critic inspection."""
