package access

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/retryafter"
)

// streamWindow is how much of one list or watch the API server may send ahead of the decoder.
// Go's default of 4 MiB for each of the streams at start-up would be the only memory that grows
// with the size of the objects. bench/README.md has the figures.
const streamWindow = 512 << 10

// discoveryWithin bounds a request of discovery, as in the library.
const discoveryWithin = 32 * time.Second

// NewClient makes the client of a process that watches a whole cluster. Requests end with their
// own contexts; discovery, which has none, ends with the given one, or after discoveryWithin.
func NewClient(ctx context.Context, config *rest.Config, o client.Options) (client.WithWatch, error) {
	config = rest.CopyConfig(config)
	if config.Dial == nil {
		// A dialer keeps the library from sharing the connection with clients made elsewhere,
		// which would get this window too.
		config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		if t := baseTransport(rt); t != nil {
			t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: streamWindow}
		}
		return rt
	})
	config.Wrap(pages.Bounded)
	config.Wrap(retryafter.InSeconds)
	var err error
	if o.HTTPClient, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("make the HTTP client: %w", err)
	}
	if o.Mapper == nil {
		discovery := *o.HTTPClient
		discovery.Transport = endingWith{ctx, discovery.Transport}
		if o.Mapper, err = apiutil.NewDynamicRESTMapper(config, &discovery); err != nil {
			return nil, fmt.Errorf("make the mapper: %w", err)
		}
	}
	c, err := client.NewWithWatch(config, o)
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	return c, nil
}

// endingWith ends requests with another context besides their own, or when they take too long.
type endingWith struct {
	context.Context

	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (e endingWith) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(request.Context(), discoveryWithin)
	stop := context.AfterFunc(e.Context, cancel) //nolint:contextcheck // the second context is the point
	response, err := e.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	response.Body = &closing{response.Body, func() { stop(); cancel() }}
	return response, nil
}

// closing is a body with an extra action on Close.
type closing struct {
	io.ReadCloser

	then func()
}

// Close implements io.Closer.
func (c *closing) Close() error {
	defer c.then()
	return c.ReadCloser.Close()
}

// baseTransport is the innermost transport; nil when its type is unknown.
func baseTransport(rt http.RoundTripper) *http.Transport {
	for {
		switch t := rt.(type) {
		case *http.Transport:
			return t
		case utilnet.RoundTripperWrapper:
			rt = t.WrappedRoundTripper()
		default:
			return nil
		}
	}
}
