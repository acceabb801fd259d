package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestMetricsServeNothingElse: libraries register profiles with the process's own pages, which aren't
// for everybody who reads metrics.
func TestMetricsServeNothingElse(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	NewMetrics().pages.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/debug/pprof/", http.NoBody))
	if answer.Code != http.StatusNotFound {
		t.Errorf("/debug/pprof/ answers %d", answer.Code)
	}
}
