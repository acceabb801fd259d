package registrylab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// Options of a [Server].
type Options struct {
	// Dir is an empty directory, which the caller removes.
	Dir string
	// Public lets everyone read; otherwise reading requires a token.
	Public bool
	// Plain disables TLS; tokens are then at another name and port than the registry.
	Plain bool
	// PageSize is the maximum number of tags on a page; 0 is the registry's own limit, 1000.
	PageSize int
	// TokenLife is how long tokens live; 0 is five minutes.
	TokenLife time.Duration
	// Notify is the URL that receives push notifications, with NotifyToken as the bearer; empty
	// disables them.
	Notify, NotifyToken string
	// Progress receives the progress of builds.
	Progress io.Writer
}

// Server is a registry and the proxy in front of it.
type Server struct {
	*Front
	// Tokens issues tokens.
	Tokens *Tokens
	// CA is the certificate to trust (PEM).
	CA []byte

	options Options
	realm   *url.URL // of the token server
	process *process.Process
	http    *http.Server
	log     *bytes.Buffer
}

// config has placeholders for directory, address, certificate, key, page size,
// authentication and notifications.
const config = `version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: %q}
  delete: {enabled: true}
http: {addr: %q, tls: {certificate: %q, key: %q}}
tags: {maxtags: %d}
%s
%s
`

//nolint:gosec // It says where tokens are, and has none.
const tokenConfig = `auth: {token: {realm: %q, service: %q, issuer: %q, rootcertbundle: %q}}`

// notifyConfig tries again every second.
const notifyConfig = `notifications: {endpoints: [{name: lab, url: %q, headers: {Authorization: [%q]}, timeout: 5s, threshold: 1, backoff: 1s}]}`

// Start runs a registry until Stop.
func Start(ctx context.Context, o Options) (*Server, error) {
	builder, err := program.NewBuilder(o.Progress)
	if err != nil {
		return nil, err
	}
	built, err := builder.Build(ctx, program.Registry)
	if err != nil {
		return nil, err
	}
	identity, err := newIdentity(o.Dir)
	if err != nil {
		return nil, err
	}
	front, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	behind, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, CA: identity.pem, log: &bytes.Buffer{}}
	s.Tokens = &Tokens{identity: identity, life: o.TokenLife}
	s.Front = newFront(front.Addr().String(), &url.URL{Scheme: "https", Host: behind}, identity, s.Tokens)
	tokens := front
	s.realm = &url.URL{Scheme: "https", Host: s.Address, Path: "/token"}
	if o.Plain {
		if tokens, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
			return nil, errors.Join(err, front.Close())
		}
		_, port, _ := net.SplitHostPort(tokens.Addr().String())
		s.realm.Scheme, s.realm.Host = "http", "localhost:"+port
	}
	s.http = &http.Server{Handler: s.Front, ReadHeaderTimeout: time.Minute, ErrorLog: quiet()}
	if err := s.serve(built[program.Registry].Path, behind); err != nil {
		return nil, errors.Join(err, front.Close())
	}
	if o.Plain {
		go s.http.Serve(front)  //nolint:errcheck // It ends with Stop.
		go s.http.Serve(tokens) //nolint:errcheck // So does this.
	} else {
		go s.http.ServeTLS(front, identity.certFile, identity.keyFile) //nolint:errcheck // So does this.
	}
	if err := s.await(ctx, behind); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) serve(path, address string) error {
	o, identity := s.options, s.Tokens.identity
	var authentication, notifications string
	if !o.Public {
		authentication = fmt.Sprintf(tokenConfig, s.realm.String(), service, issuer, identity.certFile)
	}
	if o.Notify != "" {
		notifications = fmt.Sprintf(notifyConfig, o.Notify, "Bearer "+o.NotifyToken)
	}
	if o.PageSize == 0 {
		o.PageSize = 1000
	}
	text := fmt.Sprintf(config, s.storage(), address, identity.certFile, identity.keyFile, o.PageSize, authentication, notifications)
	file := filepath.Join(o.Dir, "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	var err error
	s.process, err = process.Start(process.Spec{
		Path: path, Args: []string{"serve", file}, Stdout: s.log, Stderr: s.log,
		Env: append(os.Environ(), "OTEL_TRACES_EXPORTER=none"),
	})
	return err
}

// await returns when the registry accepts connections.
func (s *Server) await(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return connection.Close()
		}
		select {
		case <-s.process.Done():
			return fmt.Errorf("the registry ended: %s", s.log)
		case <-ctx.Done():
			return fmt.Errorf("wait for the registry: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// storage is where the registry keeps its files.
func (s *Server) storage() string { return filepath.Join(s.options.Dir, "storage") }

// Stop ends it.
func (s *Server) Stop() error {
	s.release()
	return errors.Join(s.http.Close(), s.process.Kill())
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
