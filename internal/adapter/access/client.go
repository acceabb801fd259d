package access

import (
	"fmt"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// streamWindow is how much of one list or watch the API server may send ahead of
// what was decoded. Go's own 4 MiB, held for each of the streams of a start, would
// be the only memory that grows with the size of the objects. bench/README.md has
// the figures.
const streamWindow = 512 << 10

// NewClient makes the client of a process that follows a whole cluster.
func NewClient(config *rest.Config, o client.Options) (client.WithWatch, error) {
	config = rest.CopyConfig(config)
	if config.Dial == nil {
		// A dialer keeps the library from sharing the connection with clients that
		// were made elsewhere, which would get this window too.
		config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		if t := baseTransport(rt); t != nil {
			t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: streamWindow}
		}
		return rt
	})
	var err error
	if o.HTTPClient, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("make the HTTP client: %w", err)
	}
	c, err := client.NewWithWatch(config, o)
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	return c, nil
}

// baseTransport is the one that all others wrap; nil when it is of no known type.
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
