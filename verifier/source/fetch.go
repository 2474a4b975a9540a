package source

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// scp is Git's short form of an SSH address: user@host:path.
var scp = regexp.MustCompile(`^[\w.-]+@[\w.-]+:`)

// fetch returns the folder to read from. A remote repository is cloned, bare and with its whole
// history, into a private temporary folder, which temp then names; a file:// URL is read in place.
func fetch(ctx context.Context, repo string) (dir, temp string, err error) {
	if scheme, _, ok := strings.Cut(repo, "://"); !scp.MatchString(repo) {
		if !ok {
			return repo, "", nil
		}
		u, err := url.Parse(repo)
		switch {
		case err != nil:
			return "", "", &UsageError{Asked: "repository URL", Problem: "it is not a URL"} // the text may hold a password
		case scheme == "file":
			return u.Path, "", nil
		case scheme != "http" && scheme != "https" && scheme != "ssh" && scheme != "git":
			return "", "", &UsageError{Asked: fmt.Sprintf("repository %q", u.Redacted()), Problem: "the scheme " + scheme + " is not supported", Do: "use https, ssh or file"}
		}
	}
	temp, err = os.MkdirTemp("", "rebuild-check-clone-")
	if err != nil {
		return "", "", fmt.Errorf("creating a folder for the clone: %w", err)
	}
	_, err = git.PlainCloneContext(ctx, temp, true, &git.CloneOptions{URL: repo, Tags: git.AllTags})
	if err == nil {
		return temp, temp, nil
	}
	clean := redact(repo)
	switch {
	case errors.Is(err, transport.ErrRepositoryNotFound), errors.Is(err, transport.ErrEmptyRemoteRepository):
		err = &UsageError{Asked: fmt.Sprintf("repository %q", clean), Problem: err.Error()}
	case clean != repo && strings.Contains(err.Error(), repo): // the text of the error holds the password
		err = fmt.Errorf("cloning %s: %s", clean, strings.ReplaceAll(err.Error(), repo, clean))
	default:
		err = fmt.Errorf("cloning %s: %w", clean, err)
	}
	return "", "", errors.Join(err, os.RemoveAll(temp))
}

// redact hides the password of a URL.
func redact(repo string) string {
	if u, err := url.Parse(repo); err == nil && u.User != nil {
		return u.Redacted()
	}
	return repo
}
