"""What an answer claims: its sentences, their kinds, and the facts that they state. All judges read these."""
