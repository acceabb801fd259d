package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/lockstep-dev/lockstep/internal/feature/images"
)

// nextChecksPath is where the controller serves, beside its metrics, when it checks each image
// next. A replica that does not lead doesn't check images.
const nextChecksPath = "/images"

// maxNextChecks limits the response with a controller's next checks.
const maxNextChecks = 64 << 20

// nextChecks serves the data that "lockstep images" reads.
func nextChecks(inputs *images.Inputs) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(inputs.NextChecks())
	})
}

// ReadNextChecks queries the controller whose metrics are at the address.
func ReadNextChecks(ctx context.Context, metrics *url.URL) ([]images.NextCheck, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, metrics.JoinPath(nextChecksPath).String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("query the controller's next checks: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("query the controller's next checks: %s answered %s; it needs --images", metrics.Host, response.Status)
	}
	var checks []images.NextCheck
	if err := json.NewDecoder(io.LimitReader(response.Body, maxNextChecks)).Decode(&checks); err != nil {
		return nil, fmt.Errorf("query the controller's next checks: %w", err)
	}
	return checks, nil
}
