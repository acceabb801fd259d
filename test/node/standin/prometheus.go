package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// server is an application that is told over HTTP to read its file again.
type server struct {
	file string

	mu      sync.Mutex
	running string
	success int
}

// prometheus serves at Prometheus' port, with its paths and its metric.
func prometheus(args []string) error {
	s := &server{success: 1}
	for _, arg := range args {
		if file, found := strings.CutPrefix(arg, "--config.file="); found {
			s.file = file
		}
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		return err
	}
	describe()
	s.running = string(text)
	say("started with", strings.TrimSpace(s.running))

	mux := http.NewServeMux()
	mux.HandleFunc("POST /-/reload", s.reload)
	mux.HandleFunc("GET /-/ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /metrics", s.metrics)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	failed := make(chan error, 1)
	go func() {
		failed <- (&http.Server{Addr: ":9090", Handler: mux, ReadHeaderTimeout: time.Minute}).ListenAndServe()
	}()
	select {
	case err := <-failed:
		return err
	case <-end:
		return nil
	}
}

func (s *server) reload(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.success = 0
	text, err := os.ReadFile(s.file)
	if err == nil && linesWith(string(text), "at start") != linesWith(s.running, "at start") {
		err = errors.New("a setting has changed that is read at the start only")
	}
	if err != nil {
		say("refused", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.running, s.success = string(text), 1
	say("reloaded with", strings.TrimSpace(s.running))
}

func (s *server) metrics(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(w, "prometheus_config_last_reload_successful %d\n", s.success)
}
