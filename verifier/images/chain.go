package images

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// accepted are the manifest media types that are asked for; schema 1 comes last, so that a registry
// gives it only when it has nothing else, and it can be named.
var accepted = []string{
	"application/vnd.oci.image.index.v1+json",
	"application/vnd.docker.distribution.manifest.list.v2+json",
	"application/vnd.oci.image.manifest.v1+json",
	"application/vnd.docker.distribution.manifest.v2+json",
	"application/vnd.docker.distribution.manifest.v1+prettyjws;q=0.1",
	"application/vnd.docker.distribution.manifest.v1+json;q=0.1",
}

var digestText = regexp.MustCompile(`^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`)

// maxDepth bounds indexes inside indexes.
const maxDepth = 3

type descriptor struct {
	MediaType string    `json:"mediaType"`
	Digest    string    `json:"digest"`
	Size      int64     `json:"size"`
	Platform  *platform `json:"platform"`
}

// manifest is an index or an image manifest, whichever fields it has.
type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	Manifests     []descriptor `json:"manifests"`
	Config        *descriptor  `json:"config"`
	Layers        []descriptor `json:"layers"`
}

// chain is what was proven: every link's content has the digest that the link before names.
type chain struct {
	endpoint                string
	index, manifest, config string
	platform                string
	size                    int64
}

// prove follows a reference to its config. What was proven before an error is in the chain.
func (c *client) prove(ctx context.Context, ref reference, node platform) (chain, error) {
	var done chain
	session, err := c.open(ctx, ref.Context())
	if err != nil {
		return done, err
	}
	digest, content, err := session.manifest(ctx, ref.Identifier(), ref.digest)
	if err != nil {
		return done, err
	}
	done.endpoint = session.endpoint
	if content.Manifests == nil {
		return done, session.image(ctx, &done, digest, content, node, true)
	}
	done.index = digest
	return done, session.choose(ctx, &done, content, node, 1)
}

// manifest fetches a manifest and proves its digest: against the registry's own header, and against
// want where that is known.
func (s *session) manifest(ctx context.Context, identifier, want string) (string, *manifest, error) {
	if want != "" && !digestText.MatchString(want) {
		return "", nil, &fault{code: "image-unverified", message: fmt.Sprintf("%q is no digest", want)}
	}
	got, err := s.ask(ctx, http.MethodGet, "manifests/"+identifier, accepted)
	if err != nil {
		return "", nil, fmt.Errorf("manifest %s: %w", identifier, err)
	}
	var content manifest
	parsed := json.Unmarshal(got.body, &content)
	if content.SchemaVersion == 1 || strings.Contains(got.header.Get("Content-Type"), "docker.distribution.manifest.v1+") {
		return "", nil, &fault{code: "image-unverified",
			message: "the registry gives a schema 1 manifest, which current container runtimes do not pull",
			do:      "push the image again with a current tool, as an OCI or schema 2 manifest"}
	}
	for _, claim := range []string{got.header.Get("Docker-Content-Digest"), want} {
		if claim == "" {
			continue
		}
		if digest := hashLike(claim, got.body); digest != claim {
			return "", nil, &fault{code: "image-digest-mismatch", want: claim, got: digest,
				message: "the content of manifest " + identifier + " does not have the digest that was promised",
				do:      "do not trust this registry's answer; compare with another endpoint"}
		}
	}
	switch isImage := content.Config != nil || content.Layers != nil; {
	case parsed != nil:
		return "", nil, &fault{code: "image-unverified", message: "manifest " + identifier + " is not JSON: " + parsed.Error()}
	case isImage == (content.Manifests != nil):
		return "", nil, &fault{code: "image-unverified", message: "manifest " + identifier + " is neither an index nor an image manifest, or claims to be both"}
	case isImage && (content.Config == nil || content.Config.Digest == ""):
		return "", nil, &fault{code: "image-unverified", message: "manifest " + identifier + " names no config"}
	}
	if want == "" {
		want = hashLike("sha256:", got.body)
	}
	return want, &content, nil
}

// choose goes on from an index to the manifest that the node would run.
func (s *session) choose(ctx context.Context, done *chain, index *manifest, node platform, depth int) error {
	rate := func(d descriptor) int {
		if d.Platform == nil {
			return 1 // only its content tells
		}
		return 2 * d.Platform.runs(node)
	}
	entries := slices.Clone(index.Manifests)
	entries = slices.DeleteFunc(entries, func(d descriptor) bool { return rate(d) == 0 })
	slices.SortStableFunc(entries, func(a, b descriptor) int { return rate(b) - rate(a) })
	for _, entry := range entries {
		digest, content, err := s.manifest(ctx, entry.Digest, entry.Digest)
		if err != nil {
			return err
		}
		if content.Manifests != nil {
			if depth == maxDepth {
				return &fault{code: "image-unverified", message: fmt.Sprintf("more than %d indexes inside each other", maxDepth)}
			}
			err = s.choose(ctx, done, content, node, depth+1)
		} else {
			err = s.image(ctx, done, digest, content, node, entry.Platform == nil)
		}
		if bad, ok := err.(*fault); ok && bad.code == "image-platform-missing" && entry.Platform == nil {
			continue
		}
		return err
	}
	var have []string
	for _, entry := range index.Manifests {
		if entry.Platform != nil && entry.Platform.OS != "unknown" {
			have = append(have, entry.Platform.String())
		}
	}
	return platformMissing(node, have)
}

func platformMissing(node platform, have []string) error {
	return &fault{code: "image-platform-missing", want: node.String(), got: strings.Join(have, ", "),
		message: "the image is not built for the platform of the nodes", do: "build and push it for " + node.String() + " too"}
}

// image ends the chain at the config, and compares its platform where no index did.
func (s *session) image(ctx context.Context, done *chain, digest string, content *manifest, node platform, compare bool) error {
	config := content.Config.Digest
	if !digestText.MatchString(config) {
		return &fault{code: "image-unverified", message: fmt.Sprintf("manifest %s names %q as its config, which is no digest", digest, config)}
	}
	got, err := s.ask(ctx, http.MethodGet, "blobs/"+config, nil)
	if err != nil {
		return fmt.Errorf("config %s: %w", config, err)
	}
	if sum := hashLike(config, got.body); sum != config {
		return &fault{code: "image-digest-mismatch", want: config, got: sum,
			message: "the content of the config does not have the digest that manifest " + digest + " names"}
	}
	// A config of another kind than an image's, as artifacts have it, states no platform.
	var built platform
	_ = json.Unmarshal(got.body, &built)
	if compare && built.OS != "" && built.runs(node) == 0 {
		return platformMissing(node, []string{built.String()})
	}
	done.manifest, done.config, done.platform = digest, config, strings.Trim(built.String(), "/")
	done.size = int64(len(got.body))
	for _, layer := range content.Layers {
		done.size += layer.Size
	}
	return nil
}

// hashLike hashes body by the algorithm of like; an algorithm that nobody uses gives "".
func hashLike(like string, body []byte) string {
	switch algorithm, _, _ := strings.Cut(like, ":"); algorithm {
	case "sha256":
		sum := sha256.Sum256(body)
		return "sha256:" + hex.EncodeToString(sum[:])
	case "sha512":
		sum := sha512.Sum512(body)
		return "sha512:" + hex.EncodeToString(sum[:])
	}
	return ""
}
