package main

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/remains"
)

// guard reads what a process holds, one line each, until that process is gone,
// however it ends: the kernel then closes the pipe. Then it removes what is still held.
//
//	hold session 4711 1b4e28ba-2fa1-11d2-883f-0016d3cca427/90125
//	hold plane /home/me/.cache/lockstep/lab/runs/123
//	drop session 4711 1b4e28ba-2fa1-11d2-883f-0016d3cca427/90125
//
// A session is named by the identity of its first process: an unrelated process may have the
// same ID by the time the session is removed.
//
// A child that was started right before the end keeps the pipe open until its own program
// runs, so none is missed.
func guard(from io.Reader) error {
	var held []string
	for lines := bufio.NewScanner(from); lines.Scan(); {
		verb, thing, _ := strings.Cut(lines.Text(), " ")
		switch verb {
		case "hold":
			held = append(held, thing)
		case "drop":
			held = slices.DeleteFunc(held, func(h string) bool { return h == thing })
		}
	}
	var errs []error
	for _, thing := range held {
		errs = append(errs, takeAway(thing))
	}
	return errors.Join(errs...)
}

func takeAway(thing string) error {
	kind, name, _ := strings.Cut(thing, " ")
	switch kind {
	case "session":
		leader, err := process.ParseIdentity(name)
		if err != nil || leader.PID < 2 {
			return errors.New("no session: " + name)
		}
		return process.EndSession(leader)
	case "plane":
		return remains.Remove(name)
	}
	return errors.New("unknown kind of thing to hold: " + kind)
}
