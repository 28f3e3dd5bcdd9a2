"""Every command and every example in the documents, run or checked: nothing that a reader copies is only a claim."""
