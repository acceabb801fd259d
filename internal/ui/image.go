package ui

import "context"

// viewImage is the page of an image.
func (s *Server) viewImage(context.Context, request) (page, error) { return page{}, errNoPage }
