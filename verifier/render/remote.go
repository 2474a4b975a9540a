package render

import (
	"net/url"
	"regexp"
	"strings"
)

var (
	fullCommit = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	tagLike    = regexp.MustCompile(`^v?\d+(\.\d+)*([-+.].*)?$`)
	manifest   = regexp.MustCompile(`(?i)\.(ya?ml|json)$`)
)

// remoteKind says what a remote base is and whether it can give something else tomorrow.
func remoteKind(text string) string {
	lower := strings.ToLower(text)
	if rest, ok := strings.CutPrefix(lower, "oci://"); ok {
		name := rest[strings.LastIndex(rest, "/")+1:]
		if strings.Contains(name, "@sha256:") {
			return "an OCI digest, which is fixed"
		}
		if _, tag, ok := strings.Cut(name, ":"); ok {
			return "OCI tag " + tag + ", which can move"
		}
		return "an OCI artifact without a tag, whatever it then is"
	}
	base, query, _ := strings.Cut(text, "?")
	values, _ := url.ParseQuery(query) // what cannot be read names no ref
	ref := values.Get("ref")
	if ref == "" {
		ref = values.Get("version")
	}
	switch {
	case fullCommit.MatchString(ref):
		return "a fixed Git commit"
	case tagLike.MatchString(ref):
		return "Git tag " + ref + ", which can move"
	case ref != "":
		return "Git branch " + ref + ", or a tag, as it is at the time"
	case strings.HasPrefix(lower, "http") && manifest.MatchString(base):
		return "a file over HTTP, as it is at the time"
	}
	return "a Git repository's default branch, as it is at the time"
}
