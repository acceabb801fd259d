package objectwatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/retryafter"
)

// Selector selects the objects of one kind and namespace to follow.
type Selector struct {
	Kind filemap.Kind
	// Namespace is empty for all namespaces.
	Namespace string
	// Name picks one object by a field selector, which a role limited to that
	// name allows. Labels pick any number. Exactly one of them is set.
	Name, Labels string
}

// Validate reports every mistake in the selector.
func (s Selector) Validate() error {
	var mistakes []error
	if s.Kind != filemap.ConfigMap && s.Kind != filemap.Secret {
		mistakes = append(mistakes, fmt.Errorf("source %s: want a configmap or a secret", s))
	}
	if (s.Name == "") == (s.Labels == "") {
		mistakes = append(mistakes, fmt.Errorf("source %s: want either a name or a label selector", s))
	}
	if s.Name != "" && s.Namespace == "" {
		mistakes = append(mistakes, fmt.Errorf("source %s: a name needs its namespace", s))
	}
	if _, err := labels.Parse(s.Labels); err != nil {
		mistakes = append(mistakes, fmt.Errorf("source %s: label selector: %w", s, err))
	}
	return errors.Join(mistakes...)
}

// String names the source for users.
func (s Selector) String() string {
	namespace := s.Namespace
	if namespace == "" {
		namespace = "*"
	}
	if s.Labels != "" {
		return string(s.Kind) + "/" + namespace + "/[" + s.Labels + "]"
	}
	return string(s.Kind) + "/" + namespace + "/" + s.Name
}

// Sink receives the observed objects. Several goroutines call its methods.
//
//nolint:interfacebloat // what can be said about a source; always used together
type Sink interface {
	// Keep stores a value and returns its digest. Replace or Put follows, or Unpin for values
	// that were given up on the way.
	Keep(value []byte) (filemap.Digest, error)
	Unpin(entries []filemap.Entry)
	// Admit reports whether an object of this weight may be kept; one that may not is omitted.
	// Readmits reports whether a source has to be read again, because omitted objects fit now.
	Admit(source string, ref filemap.Ref, weight int64) bool
	Readmits(source string) bool
	// Replace sets all objects of a source.
	Replace(source string, objects []filemap.Object)
	// Put sets one new or changed object.
	Put(source string, object filemap.Object)
	// Remove reports that an object was deleted.
	Remove(source string, ref filemap.Ref)
	// Failed reports why a source can't be read at the moment. Recovered reports that it can be
	// read again and is unchanged. Replace and Put imply that too.
	Failed(source string, err error)
	Recovered(source string)
}

// Options configure which objects are followed and how closely.
type Options struct {
	Selectors []Selector
	// Stall is how long a watch may be silent.
	Stall time.Duration
	// SubdirAnnotation names the annotation with which an object may request a directory; empty
	// means none.
	SubdirAnnotation string
}

// minStall is long enough for the server to end a watch twice.
const minStall = 4 * time.Second

// Validate reports every mistake in the options.
func (o Options) Validate() error {
	var mistakes []error
	for _, s := range o.Selectors {
		mistakes = append(mistakes, s.Validate())
	}
	if o.Stall < minStall {
		mistakes = append(mistakes, fmt.Errorf("stall deadline %s: want at least %s", o.Stall, minStall))
	}
	return errors.Join(mistakes...)
}

// Watcher follows all selectors.
type Watcher struct {
	opts   Options
	sink   Sink
	rest   *rest.RESTClient
	client *http.Client
	now    func() time.Time

	mu       sync.Mutex
	progress map[string]time.Time
	held     map[Selector]map[*hold]bool
}

// New returns a watcher for the API server of config.
func New(config *rest.Config, opts Options, sink Sink, now func() time.Time) (*Watcher, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Wrap(retryafter.InSeconds)
	version := groupVersion()
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &version, "/api", serializers()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare the API client: %w", err)
	}
	restClient, err := rest.RESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("prepare the API client: %w", err)
	}
	w := &Watcher{
		opts: opts, sink: sink, rest: restClient, client: client, now: now,
		progress: map[string]time.Time{}, held: map[Selector]map[*hold]bool{},
	}
	for _, s := range opts.Selectors {
		w.progress[s.String()] = now()
	}
	return w, nil
}

// Run follows the sources until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	var sources sync.WaitGroup
	for _, s := range w.opts.Selectors {
		sources.Go(func() { w.follow(ctx, s) })
	}
	sources.Wait()
}

// pageSize bounds how many objects of a list are in memory at once. A ConfigMap holds at
// most a megabyte.
const pageSize = 8

func (w *Watcher) follow(ctx context.Context, s Selector) {
	store := &store{watcher: w, selector: s}
	// Faster than the library's default after a short outage. After a long one it loads the
	// server no more than any other watcher in the pod.
	backoff := &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 100, Cap: 15 * time.Second}
	reflector := cache.NewReflectorWithOptions(w.listWatch(s), &object{}, store, cache.ReflectorOptions{Name: s.String(), Backoff: backoff})
	reflector.WatchListPageSize = pageSize
	reflector.RunWithContext(ctx)
}

// alive records that the server answered.
func (w *Watcher) alive(source string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress[source] = w.now()
}

// Age is how long ago the most silent source last responded, and its name.
func (w *Watcher) Age() (string, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var oldest string
	var age time.Duration
	for source, at := range w.progress {
		if since := w.now().Sub(at); oldest == "" || since > age {
			oldest, age = source, since
		}
	}
	return oldest, age
}

// redial makes the next request open a new connection: the current one may be dead without
// an error.
func (w *Watcher) redial() { utilnet.CloseIdleConnectionsFor(w.client.Transport) }
