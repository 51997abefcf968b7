"""Groups beside a live cluster: their own small belief, for a group touches no partition that a walk writes to.

world        what a state consists of: who coordinates, what it remembers, what its log has, which requests are open
answering    what a coordinator may answer, by the reference model
rules        what happens unseen: coordinators hear of their election, load, time out members
following    the belief, and how it changes with what the model is told
consumers    what the harness's own consumers know of themselves
drawing      which steps a walk may draw
translating  requests and answers: as the wire has them, and as the reference model has them
stepper      takes the steps
"""
