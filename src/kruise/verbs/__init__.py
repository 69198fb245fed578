"""What the everyday verbs decide: which objects are meant, what changes in them, what to say, and whether it is done.

Pure: whole objects in, changed objects, patches and texts out. `kruise.cli` reads, writes and prints.

- `kinds`, `targets`: from words of a command line to kinds, whose faces say where things are, and to objects;
- `history`, `undo`, `pausing`, `restarting`: the verbs of `kruise rollout`;
- `images`, `environment`, `resources`, `identity`: those of `kruise set`; `scaling`, `exposing`, `migration`;
- `podstates`, `waves`, `overview`: what the live view and `kruise describe rollout` show; `template_text`, `ages`: how.
"""
