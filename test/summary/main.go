// Command summary reads the output of "go test -json" and prints a summary: a line for each
// package, the output of failed tests, and at the end where the time went.
//
//	go test -json ./... | go run ./test/summary
//
// It fails when a test or a build failed, when no test ran, and, with -strict, when a test
// was skipped that doesn't belong to a later tier.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	strict := flag.Bool("strict", false, "fail when a test is skipped that doesn't belong to a later tier")
	times := flag.String("times", "", "also write the seconds of every package and test into this file, tab-separated")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *strict, *times); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, strict bool, times string) error {
	s := newSummary(out)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(out, lines.Text()) // such as a message of go itself
			continue
		}
		s.take(e)
	}
	s.close()
	if times != "" {
		if err := os.WriteFile(times, []byte(s.table()), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(lines.Err(), s.verdict(strict))
}
