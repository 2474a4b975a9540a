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

// isURL tells a URL from a folder.
func isURL(repo string) bool { return scp.MatchString(repo) || strings.Contains(repo, "://") }

// fetch returns the folder to read from. A remote repository is cloned, bare and with its whole
// history, into a private temporary folder, which temp then names; a file:// URL is read in place.
func fetch(ctx context.Context, repo string) (dir, temp string, err error) {
	if !isURL(repo) {
		return repo, "", nil
	}
	clean := redact(repo)
	if !scp.MatchString(repo) {
		u, err := url.Parse(repo)
		switch {
		case err != nil:
			return "", "", &UsageError{Asked: "repository URL", Problem: "it is not a URL"} // the text may hold a password
		case u.Scheme == "file":
			return u.Path, "", nil
		case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "ssh" && u.Scheme != "git":
			return "", "", &UsageError{Asked: fmt.Sprintf("repository %q", clean), Problem: "the scheme " + u.Scheme + " is not supported", Do: "use https, ssh or file"}
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
	text := scrub(err.Error(), repo)
	switch {
	case errors.Is(err, transport.ErrRepositoryNotFound), errors.Is(err, transport.ErrEmptyRemoteRepository),
		errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		err = &UsageError{Asked: fmt.Sprintf("repository %q", clean), Problem: text}
	case text != err.Error():
		err = fmt.Errorf("cloning %s: %s", clean, text)
	default:
		err = fmt.Errorf("cloning %s: %w", clean, err)
	}
	return "", "", errors.Join(err, os.RemoveAll(temp))
}

const hidden = "xxxxx"

// redact is a URL without what may be a credential: the password, over HTTP also the user, which is
// where tokens stand, and the query.
func redact(repo string) string {
	if !strings.Contains(repo, "://") {
		return repo
	}
	u, err := url.Parse(repo)
	if err != nil {
		if _, rest, ok := strings.Cut(repo, "://"); ok && strings.ContainsAny(rest, "@?") {
			return hidden
		}
		return repo
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			u.User = url.UserPassword(u.User.Username(), hidden)
		}
		if u.Scheme == "http" || u.Scheme == "https" {
			u.User = url.User(hidden)
		}
	}
	if u.RawQuery != "" {
		u.RawQuery = hidden
	}
	return u.String()
}

// scrub removes the credentials of a URL from a text, in which they may stand as written or decoded.
func scrub(text, repo string) string {
	u, err := url.Parse(repo)
	if err != nil || scp.MatchString(repo) {
		return text
	}
	secrets := []string{u.RawQuery}
	if u.User != nil {
		password, _ := u.User.Password()
		_, escaped, _ := strings.Cut(u.User.String(), ":")
		secrets = append(secrets, u.User.String(), password, escaped)
		if u.Scheme == "http" || u.Scheme == "https" {
			secrets = append(secrets, u.User.Username())
		}
	}
	text = strings.ReplaceAll(text, repo, redact(repo))
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	return text
}
