package labtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxAnswer bounds how much of an answer is read.
const maxAnswer = 16 << 20

// api sends the few requests that the lab itself needs. Manifests are YAML text, which the
// API server accepts.
type api struct {
	server string
	client *http.Client
}

func newAPI(run *Run) (*api, error) {
	ca, err := os.ReadFile(filepath.Join(run.Dir, caFile))
	if err != nil {
		return nil, fmt.Errorf("read the lab's certificate authority: %w", err)
	}
	admin, err := tls.LoadX509KeyPair(filepath.Join(run.Dir, adminCertFile), filepath.Join(run.Dir, adminKeyFile))
	if err != nil {
		return nil, fmt.Errorf("read the lab's administrator certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	config := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{admin}, MinVersion: tls.VersionTLS13}
	// Without kept connections, requests after a restart of the API server use a new one.
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	return &api{server: run.Server, client: &http.Client{Transport: transport, Timeout: 30 * time.Second}}, nil
}

func (a *api) get(ctx context.Context, path string) ([]byte, error) {
	return a.do(ctx, http.MethodGet, path, "")
}

func (a *api) create(ctx context.Context, path, manifest string) ([]byte, error) {
	return a.do(ctx, http.MethodPost, path, manifest)
}

// apply creates an object or makes it equal to the manifest.
func (a *api) apply(ctx context.Context, path, manifest string) error {
	_, err := a.do(ctx, http.MethodPatch, path+"?fieldManager=lab&force=true", manifest)
	return err
}

func (a *api) delete(ctx context.Context, path string) error {
	_, err := a.do(ctx, http.MethodDelete, path, "")
	return err
}

func (a *api) do(ctx context.Context, method, path, manifest string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.server+path, strings.NewReader(manifest))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if manifest != "" {
		request.Header.Set("Content-Type", contentType(method))
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s %s: read answer: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s %s: %w", method, path, refusal(response.Status, answer))
	}
	return answer, nil
}

func contentType(method string) string {
	if method == http.MethodPatch {
		return "application/apply-patch+yaml"
	}
	return "application/yaml"
}

// refusal is the message of an error response.
func refusal(status string, answer []byte) error {
	var said struct{ Message string }
	if json.Unmarshal(answer, &said) == nil && said.Message != "" {
		return errors.New(said.Message)
	}
	return errors.New(status)
}
