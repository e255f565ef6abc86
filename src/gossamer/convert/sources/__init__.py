"""What a file of another format holds, faithfully: a module per format. Nothing is lowered here."""
