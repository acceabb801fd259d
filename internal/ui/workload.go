package ui

import "context"

// viewWorkload is the page of a workload.
func (s *Server) viewWorkload(context.Context, request) (page, error) { return page{}, errNoPage }
