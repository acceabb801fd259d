package ui

import "net/http"

// mostLives is how many live connections are served.
const mostLives = 32

func (s *Server) serveLive(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
