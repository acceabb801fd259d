package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// serveHealth answers probes until the returned function is called. Without an
// address it does nothing.
func (r *runner) serveHealth(ctx context.Context, helpers *sync.WaitGroup) (func(), error) {
	if r.config.HealthAddr == "" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.config.HealthAddr)
	if r.config.HealthOptional && errors.Is(err, unix.EADDRINUSE) {
		r.log.Warn("not serving probes: another process in the pod uses the port; set HEALTH_PORT to use another one", "address", r.config.HealthAddr)
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("serve probes on %s: %w; set another address with --health-addr", r.config.HealthAddr, err)
	}
	server := &http.Server{Handler: r.agent.Handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 30 * time.Second}
	helpers.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			r.log.Error("stopped serving probes", "error", err)
		}
	})
	r.log.Info("serving probes", "address", listener.Addr().String())
	return func() { _ = server.Close() }, nil // a failed close has no consequences
}
