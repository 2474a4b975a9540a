package images

import (
	"fmt"
	"strings"
)

// platform is os/arch[/variant] in the spelling of the OCI image specification.
type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Variant      string `json:"variant"`
}

func (p platform) String() string {
	return strings.TrimSuffix(p.OS+"/"+p.Architecture+"/"+p.Variant, "/")
}

func parsePlatform(text string) (platform, error) {
	if text == "" {
		return platform{OS: "linux", Architecture: "amd64"}, nil
	}
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return platform{}, fmt.Errorf("platform %q: want os/arch[/variant]", text)
	}
	p := platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p, nil
}

// defaultVariants are what an absent variant means, as containerd reads it.
var defaultVariants = map[string]string{"arm": "v7", "arm64": "v8", "amd64": "v1"}

func (p platform) variant() string {
	if p.Variant == "" {
		return defaultVariants[p.Architecture]
	}
	return p.Variant
}

// runs rates how well an image for p suits a node: 0 not at all, more is better. A node runs images
// for its own variant and for lower ones of the same architecture.
func (p platform) runs(node platform) int {
	if p.OS != node.OS || p.Architecture != node.Architecture || p.variant() > node.variant() {
		return 0
	}
	if p.variant() == node.variant() {
		return 100
	}
	if len(p.variant()) < 2 {
		return 0
	}
	return int(p.variant()[1]-'0') + 1
}
