package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

// Options say where and how registries are asked.
type Options struct {
	// Mirrors name the endpoints that stand in for registry hosts. A host with a mirror is asked there
	// and nowhere else; of several for one host the first counts.
	Mirrors []scenario.Mirror
	// Platform is that of the nodes, as os/arch[/variant]; empty means linux/amd64.
	Platform string
	// Keychain holds the credentials; nil means the user's Docker config and credential helpers.
	Keychain authn.Keychain
	// Parallel is how many references are looked up at once; 0 means 8.
	Parallel int

	// sleep waits between tries, or until ctx is done; nil means by the clock.
	sleep func(ctx context.Context, d time.Duration) error
}

// client asks registries. It opens one connection pool, pings an endpoint once, and asks for one
// token a repository.
type client struct {
	options   Options
	transport *http.Transport
	mu        sync.Mutex
	endpoints map[string]func() (*endpoint, error)
	sessions  map[string]func() (*session, error)
}

// endpoint is a registry that answered a ping.
type endpoint struct {
	url       string // scheme://host[:port]
	challenge *transport.Challenge
	tries     http.RoundTripper
}

// session is one repository at one endpoint.
type session struct {
	*http.Client
	endpoint string
	// base is scheme://host/v2/repository/.
	base string
	// helper is why the credential helper gave nothing, nil when it did not fail.
	helper error
}

func newClient(options Options) *client {
	if options.Keychain == nil {
		options.Keychain = authn.DefaultKeychain
	}
	if options.sleep == nil {
		options.sleep = sleep
	}
	pool := http.DefaultTransport.(*http.Transport).Clone()
	pool.MaxIdleConnsPerHost = 32
	return &client{
		options: options, transport: pool,
		endpoints: map[string]func() (*endpoint, error){},
		sessions:  map[string]func() (*session, error){},
	}
}

// target is the registry to ask for a reference, and the scheme when it is settled beforehand.
func (c *client) target(repository name.Repository) (name.Registry, string, error) {
	for _, mirror := range c.options.Mirrors {
		host, err := name.NewRegistry(mirror.Host)
		if err != nil || (host.RegistryStr() != repository.RegistryStr() && mirror.Host != repository.RegistryStr()) {
			continue
		}
		u, err := url.Parse(mirror.Endpoint)
		if err != nil {
			return name.Registry{}, "", fmt.Errorf("reading the mirror endpoint of %s: %w", mirror.Host, err)
		}
		registry, err := name.NewRegistry(u.Host)
		return registry, u.Scheme, err
	}
	return repository.Registry, "", nil
}

// place names where a reference is asked, for messages, before anything has answered.
func (c *client) place(ref reference) string {
	registry, scheme, err := c.target(ref.Context())
	if err != nil {
		return ref.Context().RegistryStr()
	}
	if scheme == "" {
		return registry.RegistryStr()
	}
	return scheme + "://" + registry.RegistryStr()
}

// open begins with a repository. Later calls get what the first one got, whichever ctx they bring.
func (c *client) open(ctx context.Context, repository name.Repository) (*session, error) {
	registry, scheme, err := c.target(repository)
	if err != nil {
		return nil, err
	}
	path := repository.RepositoryStr()
	c.mu.Lock()
	key := scheme + "://" + registry.RegistryStr()
	ping, ok := c.endpoints[key]
	if !ok {
		ping = sync.OnceValues(func() (*endpoint, error) { return c.ping(ctx, registry, scheme) })
		c.endpoints[key] = ping
	}
	begin, ok := c.sessions[key+"/"+path]
	if !ok {
		begin = sync.OnceValues(func() (*session, error) {
			at, err := ping()
			if err != nil {
				return nil, err
			}
			return c.begin(ctx, at, registry.Repo(path))
		})
		c.sessions[key+"/"+path] = begin
	}
	c.mu.Unlock()
	return begin()
}

func (c *client) ping(ctx context.Context, registry name.Registry, scheme string) (*endpoint, error) {
	tries := &retry{inner: c.transport, sleep: c.options.sleep, host: registry.RegistryStr(), scheme: scheme}
	challenge, err := transport.Ping(ctx, registry, transport.NewUserAgent(tries, "rebuild-check"))
	if err != nil {
		return nil, &trouble{err: err}
	}
	at := &endpoint{challenge: challenge, tries: tries, url: "https://" + registry.RegistryStr()}
	if challenge.Insecure {
		at.url = "http://" + registry.RegistryStr()
	}
	return at, nil
}

// begin fetches what the endpoint wants as proof of who asks. Credentials are those for the endpoint
// itself: those for a host never go to its mirror. A helper that fails leaves the anonymous user.
func (c *client) begin(ctx context.Context, at *endpoint, repository name.Repository) (*session, error) {
	auth, helper := authn.Resolve(ctx, c.options.Keychain, repository)
	if helper != nil {
		auth = authn.Anonymous
	}
	agent := transport.NewUserAgent(at.tries, "rebuild-check")
	token := &transport.Token{}
	if strings.EqualFold(at.challenge.Scheme, "bearer") {
		var err error
		token, err = transport.Exchange(ctx, repository.Registry, auth, agent, []string{repository.Scope(transport.PullScope)}, at.challenge)
		if err != nil {
			return nil, &trouble{err: err, helper: helper}
		}
	}
	signed, err := transport.FromToken(repository.Registry, auth, agent, at.challenge, token)
	if err != nil {
		return nil, &trouble{err: err, helper: helper}
	}
	return &session{
		Client:   &http.Client{Transport: signed, CheckRedirect: checkRedirect},
		endpoint: at.url,
		base:     at.url + "/v2/" + repository.RepositoryStr() + "/",
		helper:   helper,
	}, nil
}

// checkRedirect keeps a registry from sending this process to where only this machine can reach.
func checkRedirect(request *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case len(via) >= 10:
		return errors.New("more than ten redirects")
	case from.Scheme == "https" && request.URL.Scheme != "https":
		return errors.New("redirect from https to " + request.URL.Scheme)
	case isLocal(request.URL.Hostname()) && !isLocal(from.Hostname()):
		return errors.New("redirect from " + from.Host + " to a local address")
	}
	return nil
}

func isLocal(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && (address.IsLoopback() || address.IsPrivate() || address.IsLinkLocalUnicast() || address.IsUnspecified()))
}

// answer is a complete response with status 200.
type answer struct {
	header http.Header
	body   []byte
}

// ask sends one request below the session's repository.
func (s *session) ask(ctx context.Context, method, path string, accept []string) (*answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.base+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header["Accept"] = accept
	response, err := s.Do(request)
	if err != nil {
		return nil, &trouble{err: err, helper: s.helper}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, &trouble{err: err, helper: s.helper}
	}
	if response.StatusCode == http.StatusOK {
		return &answer{header: response.Header, body: body}, nil
	}
	refused := &refusal{status: response.StatusCode, helper: s.helper}
	var told struct {
		Errors []struct{ Code string }
	}
	if json.Unmarshal(body, &told) == nil {
		for _, e := range told.Errors {
			refused.codes = append(refused.codes, e.Code)
		}
	}
	return nil, refused
}
