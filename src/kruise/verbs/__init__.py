"""What the everyday verbs decide: which objects are meant, what changes in them, what to say, and whether it is done.

Pure: whole objects in, changed objects, patches and texts out. `kruise.cli` reads, writes and prints.

- `kinds`: the table that says where each kind has its template, its switch for pausing, its replicas, its history;
- `targets`: from words of a command line to objects; `documents`: reading, changing and comparing whole objects;
- `history`, `undo`, `pausing`, `restarting`: the verbs of `kruise rollout`;
- `images`, `environment`, `resources`, `identity`: those of `kruise set`; `scaling`, `exposing`, `migration`;
- `podstates`, `waves`, `overview`: what the live view and `kruise describe rollout` show; `template_text`, `ages`: how.
"""
