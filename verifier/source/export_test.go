package source

// For the tests of this folder.
var (
	ResolveURL = resolveURL
	Wildmatch  = wildmatch
	Redact     = redact
	Scrub      = scrub
)

// Text is the content of an entry of a folder, of a link its target: nothing is followed.
func (t *Tree) Text(dir, name string) (string, error) {
	at, err := t.lookup(dir, true)
	if err != nil {
		return "", err
	}
	in := at[len(at)-1].in
	f, err := t.folder(in, at[len(at)-1].id)
	if err != nil {
		return "", err
	}
	return found{f.list[f.byName[name]], name, in}.text()
}

// Gitlink is the commit that a submodule's entry records.
func (t *Tree) Gitlink(path string) string {
	at, err := t.lookup(path, false)
	if err != nil {
		return err.Error()
	}
	return at[len(at)-1].id.String()
}
