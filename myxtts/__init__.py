"""MyXTTS trains, fine-tunes and speaks XTTS-v2 on TensorFlow and Keras 3."""

__version__ = "0.1.0"
