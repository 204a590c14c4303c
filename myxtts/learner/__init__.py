"""A step of learning on one device or several: gradients, their mean, the update."""

from myxtts.learner.copies import At
from myxtts.learner.learner import Learner, Settings, share_out
from myxtts.learner.student import Lesson, Moment, Pictured, Pictures, Student, Variables

__all__ = [
    "At",
    "Learner",
    "Lesson",
    "Moment",
    "Pictured",
    "Pictures",
    "Settings",
    "Student",
    "Variables",
    "share_out",
]
