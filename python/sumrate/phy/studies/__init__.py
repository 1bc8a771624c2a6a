"""Published measurements of 60 GHz links, done again on the model, with a verdict on each claim."""
