package images

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

const defaultParallel = 8

// Resolve asks the registries about every image of the list, in parallel and once for spellings of one
// reference, and proves the chain from the reference over the index to the manifest and config for the
// platform. It returns the list with what was proven, in the same order, and what was found on the
// way. Trouble with a registry is a finding, never an error: no answer is no proof that an image is
// missing.
func Resolve(ctx context.Context, list []evidence.Image, opts Options) ([]evidence.Image, []evidence.Finding) {
	node, err := parsePlatform(opts.Platform)
	if err != nil {
		return slices.Clone(list), []evidence.Finding{{Code: "object-invalid", Severity: evidence.Fail, Object: opts.Platform, Message: err.Error()}}
	}
	return eachReference(list, opts, func(c *client, image *evidence.Image, ref reference) []evidence.Finding {
		return c.resolve(ctx, image, ref, node)
	})
}

// Recheck asks again what the resolved tags of the list name, and fills After. Pinned images and those
// that Resolve did not prove are left as they are.
func Recheck(ctx context.Context, list []evidence.Image, opts Options) ([]evidence.Image, []evidence.Finding) {
	return eachReference(list, opts, func(c *client, image *evidence.Image, ref reference) []evidence.Finding {
		if image.Pinned || image.Top() == "" {
			return nil
		}
		return c.recheck(ctx, image, ref)
	})
}

// eachReference runs work once a distinct reference, on the first image that spells it, and gives the
// other spellings what it found.
func eachReference(list []evidence.Image, opts Options, work func(*client, *evidence.Image, reference) []evidence.Finding) ([]evidence.Image, []evidence.Finding) {
	c := newClient(opts)
	defer c.transport.CloseIdleConnections()
	list = slices.Clone(list)
	found := make([][]evidence.Finding, len(list))
	groups := map[string][]int{}
	refs := make([]reference, len(list))
	for i := range list {
		ref, err := parse(list[i].Reference)
		if err != nil {
			invalid := about(list[i])
			invalid.Code, invalid.Severity, invalid.Message = "object-invalid", evidence.Fail, err.Error()
			found[i] = []evidence.Finding{invalid}
			continue
		}
		list[i].Pinned = ref.digest != ""
		refs[i] = ref
		groups[ref.Name()+" "+ref.tag] = append(groups[ref.Name()+" "+ref.tag], i)
	}
	parallel := opts.Parallel
	if parallel <= 0 {
		parallel = defaultParallel
	}
	slots := make(chan struct{}, parallel)
	var running sync.WaitGroup
	for _, members := range groups {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			first := members[0]
			found[first] = work(c, &list[first], refs[first])
			for _, other := range members[1:] {
				copyProof(&list[other], list[first])
				for _, finding := range found[first] {
					found[other] = append(found[other], respell(finding, list[other]))
				}
			}
		})
	}
	running.Wait()
	findings := slices.Concat(found...)
	evidence.SortFindings(findings)
	return list, findings
}

func copyProof(to *evidence.Image, from evidence.Image) {
	reference, uses := to.Reference, to.Uses
	*to = from
	to.Reference, to.Uses = reference, uses
}

// respell is the same finding on another spelling of the reference.
func respell(finding evidence.Finding, image evidence.Image) evidence.Finding {
	spelled := about(image)
	finding.Object, finding.NeededBy, finding.Field, finding.Origin = spelled.Object, spelled.NeededBy, spelled.Field, spelled.Origin
	if finding.Code == "image-unpinned" {
		finding.Do = pinning(image)
	}
	return finding
}

func (c *client) resolve(ctx context.Context, image *evidence.Image, ref reference, node platform) []evidence.Finding {
	proven, err := c.prove(ctx, ref, node)
	image.Endpoint, image.Index, image.Manifest, image.Config = proven.endpoint, proven.index, proven.manifest, proven.config
	image.Platform, image.Size = proven.platform, proven.size
	var findings []evidence.Finding
	if err != nil {
		findings = append(findings, c.finding(*image, ref, proven.endpoint, err))
	}
	if !image.Pinned {
		unpinned := about(*image)
		unpinned.Code, unpinned.Severity = "image-unpinned", evidence.Warn
		unpinned.Message = "a tag, no digest: it can name another image tomorrow"
		unpinned.Do = pinning(*image)
		findings = append(findings, unpinned)
	} else if ref.tag != "" && err == nil {
		findings = append(findings, c.tagBeside(ctx, *image, ref)...)
	}
	return findings
}

func pinning(image evidence.Image) string {
	if image.Top() == "" {
		return "pin it by digest"
	}
	return "pin it: " + pinnedForm(image.Reference, image.Top())
}

// tagBeside warns when the tag beside a digest names something else. The digest is what counts, so a
// registry that does not tell is left alone.
func (c *client) tagBeside(ctx context.Context, image evidence.Image, ref reference) []evidence.Finding {
	session, err := c.open(ctx, ref.Context())
	if err != nil {
		return nil
	}
	got, err := session.ask(ctx, http.MethodHead, "manifests/"+ref.tag, accepted)
	if err != nil {
		return nil
	}
	now := got.header.Get("Docker-Content-Digest")
	if now == "" || now == ref.digest {
		return nil
	}
	moved := about(image)
	moved.Code, moved.Severity, moved.Want, moved.Got = "mutable-tag", evidence.Warn, ref.digest, now
	moved.Message = "tag " + ref.tag + " now names another image than the digest beside it"
	moved.Do = "drop the tag, or move the digest on"
	return []evidence.Finding{moved}
}

// recheck believes a header that agrees with what was proven; one that does not is put to the proof.
func (c *client) recheck(ctx context.Context, image *evidence.Image, ref reference) []evidence.Finding {
	session, err := c.open(ctx, ref.Context())
	if err != nil {
		return []evidence.Finding{c.finding(*image, ref, "", err)}
	}
	if got, err := session.ask(ctx, http.MethodHead, "manifests/"+ref.tag, accepted); err == nil && got.header.Get("Docker-Content-Digest") == image.Top() {
		image.After = image.Top()
		return nil
	}
	now, _, err := session.manifest(ctx, ref.tag, "")
	if err != nil {
		finding := c.finding(*image, ref, session.endpoint, err)
		var refused *refusal
		if finding.Code == "missing-image" && errors.As(err, &refused) {
			finding.Code = "image-gone"
			finding.Message = session.endpoint + " had it when the run began, and now " + refused.Error()
		}
		return []evidence.Finding{finding}
	}
	image.After = now
	if now == image.Top() {
		return nil
	}
	moved := about(*image)
	moved.Code, moved.Severity, moved.Want, moved.Got = "image-tag-moved", evidence.Fail, image.Top(), now
	moved.Message = "the tag moved during the run, from " + image.Top() + " to " + now
	moved.Do = "pin it: " + pinnedForm(image.Reference, image.Top())
	return []evidence.Finding{moved}
}
