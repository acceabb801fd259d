package ui

import "net/http"

// do runs what the user confirmed. The guard has checked where the form comes from.
func (s *Server) do(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "not yet", http.StatusNotImplemented)
}
