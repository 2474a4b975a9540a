package experiment

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// RoleLabel marks the ConfigMap that holds an artifact; its value is model or input.
const RoleLabel = "rebuild-check.dev/artifact"

// Artifacts are what an experiment can hold fixed, as Git has it and as it is live:
//   - image: every image that ran, by the digest of its manifest;
//   - model: the ConfigMaps labelled as model, or, where none is, every ConfigMap of the set that a
//     running Pod mounts;
//   - input: those labelled as input.
func (o *Observer) Artifacts(live []evidence.Live, images []evidence.Image, containers []evidence.Container) []evidence.Artifact {
	list := imageArtifacts(images, containers)
	mounts := o.Mounts()
	labelled := false
	var mounted []evidence.Artifact
	for i, object := range o.set.Objects {
		if object.Group != "" || object.Kind != "ConfigMap" {
			continue
		}
		artifact := evidence.Artifact{Name: object.ID.String(), Git: contentDigest(object.Content), MountedBy: slices.Sorted(slices.Values(mounts[object.ID]))}
		if i < len(live) && live[i].Content != nil {
			artifact.Live = contentDigest(live[i].Content)
		}
		meta, _ := object.Content["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		role, _ := labels[RoleLabel].(string)
		switch {
		case role == "model" || role == "input":
			artifact.Role = role
			labelled = labelled || artifact.Role == "model"
			list = append(list, artifact)
		case len(artifact.MountedBy) > 0:
			artifact.Role = "model"
			mounted = append(mounted, artifact)
		}
	}
	if !labelled {
		list = append(list, mounted...)
	}
	return list
}

// imageArtifacts is one entry for each image reference and digest that ran. An index that ran is
// shown as the manifest it led to, so that the same bits give the same entry.
func imageArtifacts(images []evidence.Image, containers []evidence.Container) []evidence.Artifact {
	locked := map[string]evidence.Image{}
	for _, image := range images {
		locked[image.Reference] = image
	}
	ran := map[string]evidence.Artifact{}
	for _, c := range containers {
		image := locked[c.Reference]
		digest := c.Digest
		if digest != "" && (digest == image.Index || digest == image.Config) {
			digest = image.Manifest
		}
		ran[c.Reference+" "+digest] = evidence.Artifact{Role: "image", Name: c.Reference, Git: image.Manifest, Live: digest}
	}
	list := []evidence.Artifact{}
	for _, key := range slices.Sorted(maps.Keys(ran)) {
		list = append(list, ran[key])
	}
	return list
}

// contentDigest is the SHA-256 of a ConfigMap's files as a Pod mounts them: each key in
// order, its length and its bytes.
func contentDigest(content map[string]any) string {
	files := map[string][]byte{}
	for _, field := range []string{"binaryData", "data"} {
		entries, _ := content[field].(map[string]any)
		for key, value := range entries {
			text, _ := value.(string)
			files[key] = []byte(text)
			if field == "binaryData" {
				if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
					files[key] = decoded
				}
			}
		}
	}
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(hash, "%d %s %d ", len(key), key, len(files[key]))
		hash.Write(files[key])
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// ArtifactDigest is one digest over all artifacts as they were live.
func ArtifactDigest(artifacts []evidence.Artifact) string {
	var lines []string
	for _, a := range artifacts {
		lines = append(lines, fmt.Sprintf("%s %s %s\n", a.Role, a.Name, a.Live))
	}
	slices.Sort(lines)
	hash := sha256.New()
	for _, line := range lines {
		hash.Write([]byte(line))
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}
