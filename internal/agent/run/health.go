package run

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// serveHealth answers probes until the returned function is called. Without an
// address it does nothing.
func (r *runner) serveHealth(helpers *sync.WaitGroup) (func(), error) {
	if r.config.Health.Value == "" {
		return func() {}, nil
	}
	open, err := r.config.Health.Listen("probes")
	if r.config.HealthOptional && errors.Is(err, unix.EADDRINUSE) {
		r.log.Warn("not serving probes: another process in the pod uses the port; set "+r.config.Health.Setting+" to use another one", "address", r.config.Health.Value)
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: r.agent.Handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 30 * time.Second}
	helpers.Go(func() {
		if err := server.Serve(open); !errors.Is(err, http.ErrServerClosed) {
			r.log.Error("stopped serving probes", "error", err)
		}
	})
	r.log.Info("serving probes", "address", open.Addr().String())
	return func() { _ = server.Close() }, nil // a failed close has no consequences
}
