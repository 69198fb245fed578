"""Why something does not move: chains of causes, from the last Plan and from the pods themselves, to what one can do.

Pure. Nothing is decided here: what holds a pod back is told by the plan of its kind (`Plan.held`); what is wrong with a
pod itself is read off the pod, its node and its events. `assembling.assemble` puts both together to an `Answer`;
`words` and `data` show it.
"""
