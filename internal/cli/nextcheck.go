package cli

import (
	"context"
	"fmt"
	"net/url"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// schedule is when a controller checks each image next, or why it doesn't.
type schedule map[container]images.NextCheck

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
	checks, err := run.ReadNextChecks(ctx, at)
	if err != nil {
		return nil, err
	}
	all := schedule{}
	for _, c := range checks {
		all[container{c.Workload, c.Container}] = c
	}
	return all, nil
}

// of is what the controller says of a container's image, zero if it says nothing.
func (s schedule) of(key kube.Key, name string) images.NextCheck {
	return s[container{key.ID(), name}]
}
