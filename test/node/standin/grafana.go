package main

import (
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// provisioned is a folder that Grafana reads: what it found there is in its
// database, and what it does not find any more is deleted from it.
type provisioned struct {
	kind, dir string

	mu    sync.Mutex
	known []string
}

// grafana serves at Grafana's port, with the paths and the credentials of its
// reloads.
func grafana([]string) error {
	describe()
	mux := http.NewServeMux()
	for _, p := range []*provisioned{
		{kind: "dashboards", dir: "/tmp/dashboards"},
		{kind: "datasources", dir: "/etc/grafana/provisioning/datasources"},
	} {
		p.read()
		mux.HandleFunc("POST /api/admin/provisioning/"+p.kind+"/reload", func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			if user != os.Getenv("GF_SECURITY_ADMIN_USER") || password != os.Getenv("GF_SECURITY_ADMIN_PASSWORD") {
				http.Error(w, "unauthorized", http.StatusUnauthorized)
				return
			}
			p.read()
		})
	}
	mux.HandleFunc("GET /api/health", func(http.ResponseWriter, *http.Request) {})
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	failed := make(chan error, 1)
	go func() {
		failed <- (&http.Server{Addr: ":3000", Handler: mux, ReadHeaderTimeout: time.Minute}).ListenAndServe()
	}()
	select {
	case err := <-failed:
		return err
	case <-end:
		return nil
	}
}

// read walks the folder as Grafana does: it follows no link to a directory, and
// skips names that begin with two dots.
func (p *provisioned) read() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []string
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path != p.dir && strings.HasPrefix(d.Name(), "..") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			return err
		}
		name, err := filepath.Rel(p.dir, path)
		found = append(found, name)
		return err
	})
	if err != nil {
		say("failed", err)
	}
	for _, name := range p.known {
		if !slices.Contains(found, name) {
			say("deleted", p.kind, name)
		}
	}
	p.known = found
	say(p.kind, strings.Join(found, " "))
}
