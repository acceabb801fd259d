package access

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Raw queries the API server for data that isn't an object: its clock, its version, and a pod's HTTP
// responses.
type Raw struct {
	http *http.Client
	base *url.URL
}

// NewRaw makes a Raw from a configuration.
func NewRaw(config *rest.Config) (Raw, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return Raw{}, fmt.Errorf("make the HTTP client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return Raw{}, fmt.Errorf("find the API server: %w", err)
	}
	return Raw{http: c, base: base}, nil
}

// Times are those of one request: when it was sent and answered by our clock, and when the API
// server answered by its own, up to the second.
type Times struct{ Sent, Answered, Server time.Time }

// Time queries the API server's time.
func (r Raw) Time(ctx context.Context, now func() time.Time) (Times, error) {
	t := Times{Sent: now()}
	answer, err := r.get(ctx, "/version")
	t.Answered = now()
	if err != nil {
		return t, fmt.Errorf("reach the API server: %w", err)
	}
	if t.Server, err = http.ParseTime(answer.date); err != nil {
		return t, fmt.Errorf("read the API server's clock: %w", err)
	}
	return t, nil
}

// Version queries the API server's version, such as "v1.36.1".
func (r Raw) Version(ctx context.Context) (string, error) {
	answer, err := r.get(ctx, "/version")
	if err != nil {
		return "", fmt.Errorf("read the API server's version: %w", err)
	}
	var info struct{ GitVersion string }
	if err := json.Unmarshal([]byte(answer.text), &info); err != nil || answer.status != http.StatusOK {
		return "", fmt.Errorf("read the API server's version: it answered with status %d", answer.status)
	}
	return info.GitVersion, nil
}

// PodPort is a port of a pod.
type PodPort struct{ Namespace, Pod, Port string }

// FromPod gets a path from a port of a pod, through the API server.
func (r Raw) FromPod(ctx context.Context, at PodPort, path string) (status int, text string, err error) {
	answer, err := r.get(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%s/proxy%s", at.Namespace, at.Pod, at.Port, path))
	if err != nil {
		return 0, "", fmt.Errorf("query pod %s: %w", at.Pod, err)
	}
	return answer.status, answer.text, nil
}

// maxRaw limits a response.
const maxRaw = 1 << 20

// rawAnswer is the used part of a response.
type rawAnswer struct {
	status     int
	date, text string
}

func (r Raw) get(ctx context.Context, path string) (rawAnswer, error) {
	path, query, _ := strings.Cut(path, "?")
	target := r.base.JoinPath(path)
	target.RawQuery = query
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return rawAnswer{}, err
	}
	response, err := r.http.Do(request)
	if err != nil {
		return rawAnswer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxRaw))
	return rawAnswer{response.StatusCode, response.Header.Get("Date"), string(text)}, err
}
