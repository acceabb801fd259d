package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// maxNextChecks limits the response with a controller's next checks.
const maxNextChecks = 64 << 20

// schedule is when a controller checks each image next.
type schedule map[container]time.Time

// container is a container of a workload.
type container struct{ workload, name string }

// readSchedule queries the controller at an address; an empty address returns nothing.
func readSchedule(ctx context.Context, address string) (schedule, error) {
	if address == "" {
		return nil, nil
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return nil, usageError{fmt.Errorf("--controller %q: want the address of its metrics, such as http://127.0.0.1:8080", address)}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath(run.NextChecksPath).String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the controller for its next checks: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask the controller for its next checks: %s answered %s; it needs --images", at.Host, response.Status)
	}
	var checks []images.NextCheck
	if err := json.NewDecoder(io.LimitReader(response.Body, maxNextChecks)).Decode(&checks); err != nil {
		return nil, fmt.Errorf("ask the controller for its next checks: %w", err)
	}
	all := schedule{}
	for _, c := range checks {
		all[container{c.Workload, c.Container}] = c.At
	}
	return all, nil
}

// next is when a container's image is checked next; false if unknown.
func (s schedule) next(key kube.Key, name string) (time.Time, bool) {
	at, ok := s[container{key.ID(), name}]
	return at, ok
}
