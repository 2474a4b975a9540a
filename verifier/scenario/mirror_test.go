package scenario

import (
	"strings"
	"testing"
)

func TestParseMirror(t *testing.T) {
	good := map[string]Mirror{
		"docker.io=http://127.0.0.1:5001":                  {Host: "docker.io", Endpoint: "http://127.0.0.1:5001"},
		"a:5000=https://b/":                                {Host: "a:5000", Endpoint: "https://b"},
		"docker.io=http://127.0.0.1:5001,http://reg:5000/": {Host: "docker.io", Endpoint: "http://127.0.0.1:5001", Node: "http://reg:5000"},
	}
	for text, want := range good {
		if got, err := ParseMirror(text); err != nil || got != want {
			t.Errorf("ParseMirror(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "docker.io", "=http://x", "a/b=http://x", "a=x", "a=ftp://x", "a=http://", "a=http://u:p@x", "a=http://x/v2", "a=http://x,", "a=http://x,y", "a'b=http://x", "a$(x)=http://x", "a=http://x'y"} {
		if got, err := ParseMirror(text); err == nil {
			t.Errorf("ParseMirror(%q) = %+v, want an error", text, got)
		}
	}
}

func TestParseMirrorKeepsPasswords(t *testing.T) {
	for _, text := range []string{"a=http://user:hunter2@b", "a=ftp://user:hunter2@b", "a b=http://user:hunter2@b", "a=http://b,http://user:hunter2@c"} {
		if _, err := ParseMirror(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("ParseMirror(%q): %v", text, err)
		}
	}
}
