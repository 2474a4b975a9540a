package images

import (
	"context"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	sha256, sha512 := "sha256:"+strings.Repeat("a", 64), "sha512:"+strings.Repeat("b", 128)
	cases := []struct{ name, text, want string }{
		{"short", "nginx", "index.docker.io/library/nginx:latest"},
		{"library", "library/nginx", "index.docker.io/library/nginx:latest"},
		{"docker.io", "docker.io/nginx", "index.docker.io/library/nginx:latest"},
		{"index.docker.io", "index.docker.io/library/nginx:latest", "index.docker.io/library/nginx:latest"},
		{"user of the default registry", "team/app:1", "index.docker.io/team/app:1"},
		{"localhost", "localhost/x:y", "localhost/x:y"},
		{"localhost with a port", "localhost:5000/x", "localhost:5000/x:latest"},
		{"host with a port", "host:5000/x@" + sha256, "host:5000/x@" + sha256},
		{"tag and digest", "reg.example/x:tag@" + sha256, "reg.example/x@" + sha256},
		{"first part without a dot is no host", "registry-without-dot/x", "index.docker.io/registry-without-dot/x:latest"},
		{"IPv6", "[::1]:5000/x", "[::1]:5000/x:latest"},
		{"SHA-512", "x:tag@" + sha512, "index.docker.io/library/x@" + sha512},
		{"separators", "reg.example/a-b__c.d/e--f", "reg.example/a-b__c.d/e--f:latest"},
		{"longest tag", "x:" + strings.Repeat("t", 128), "index.docker.io/library/x:" + strings.Repeat("t", 128)},
		{"tag too long", "x:" + strings.Repeat("t", 129), ""},
		{"upper case", "reg.example/App", ""},
		{"trailing space", "nginx ", ""},
		{"empty tag", "nginx:", ""},
		{"tag that begins with a dash", "nginx:-1", ""},
		{"empty part", "reg.example/a//b", ""},
		{"dash in front", "-nginx", ""},
		{"short digest", "nginx@sha256:abc", ""},
		{"two digests", "nginx@" + sha256 + "@" + sha256, ""},
		{"bare id", strings.Repeat("a", 64), ""},
		{"bare digest", sha256, ""},
		{"URL", "https://reg.example/x", ""},
		{"empty", "", ""},
		{"variable", "reg.example/x:${TAG}", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ref, err := parse(c.text)
			if c.want == "" {
				if err == nil {
					t.Fatalf("%q was taken as %s", c.text, ref.Name())
				}
				_, findings := Resolve(context.Background(), use(c.text), fast(nil))
				if codes(findings) != "fail object-invalid" || findings[0].Origin.String() != "web.yaml:12" {
					t.Errorf("got %+v", findings)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if ref.Name() != c.want {
				t.Errorf("got %s, want %s", ref.Name(), c.want)
			}
		})
	}
}

func TestPinnedForm(t *testing.T) {
	for text, want := range map[string]string{
		"nginx": "nginx@d", "nginx:1": "nginx@d", "localhost:5000/x": "localhost:5000/x@d", "localhost:5000/x:1": "localhost:5000/x@d", "x:1@e": "x@d",
	} {
		if got := pinnedForm(text, "d"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestPlatforms(t *testing.T) {
	cases := []struct {
		image, node string
		runs        bool
	}{
		{"linux/amd64", "linux/amd64", true},
		{"linux/amd64", "linux/arm64", false},
		{"windows/amd64", "linux/amd64", false},
		{"linux/arm64/v8", "linux/arm64", true},
		{"linux/arm64", "linux/arm64/v8", true},
		{"linux/arm/v6", "linux/arm", true},
		{"linux/arm/v7", "linux/arm/v6", false},
		{"linux/amd64/v3", "linux/amd64", false},
		{"linux/amd64", "linux/amd64/v3", true},
	}
	for _, c := range cases {
		image, _ := parsePlatform(c.image)
		node, _ := parsePlatform(c.node)
		if (image.runs(node) > 0) != c.runs {
			t.Errorf("%s on %s: want %v", c.image, c.node, c.runs)
		}
	}
	list, findings := Resolve(context.Background(), use("nginx"), Options{Platform: "linux"})
	if codes(findings) != "fail object-invalid" || len(list) != 1 {
		t.Errorf("got %+v", findings)
	}
}
