package ui

import "context"

type board struct{}

func newBoard(Options) *board { return &board{} }

func (b *board) run(ctx context.Context) { <-ctx.Done() }

func (b *board) gone() string { return "" }
