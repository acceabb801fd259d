package ui

import "context"

func (s *Server) viewOverview(ctx context.Context, r request) (page, error) {
	return page{title: "Workloads", body: el("h1", "", text("Workloads"))}, nil
}
