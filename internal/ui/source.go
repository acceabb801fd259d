package ui

import "context"

// viewSource is the page of a ConfigMap or Secret.
func (s *Server) viewSource(context.Context, request) (page, error) { return page{}, errNoPage }
