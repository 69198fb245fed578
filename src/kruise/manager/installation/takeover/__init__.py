"""Taking over a cluster that runs OpenKruise, and the way back.

What is there is read (`looking`), what is to be done about it is decided (`steps`), and that is carried out
(`carrying`). Each run looks anew, so one that was broken off goes on where it stopped. What was there is kept in a note
(`note`) before anything is changed: the way back needs nothing else.
"""
