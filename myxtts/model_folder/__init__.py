"""The one folder that a model is kept in: what lies where, and the networks that come of it."""
