package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// nginx is a master with one worker, which it replaces when it takes a new
// configuration. "nginx -t -c FILE" checks one.
func nginx(args []string) error {
	at := slices.Index(args, "-c")
	if at < 0 || at+1 == len(args) {
		return errors.New("want: nginx [-t] -c FILE")
	}
	file := args[at+1]
	text, err := configuration(file)
	if err != nil || slices.Contains(args, "-t") {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGQUIT)
	describe()
	say("started with", answer(text))
	work, err := startWorker()
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	ready := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	go func() {
		failed <- (&http.Server{Addr: ":8081", Handler: ready, ReadHeaderTimeout: time.Minute}).ListenAndServe()
	}()
	for {
		select {
		case err := <-failed:
			return err
		case s := <-signals:
			if s == syscall.SIGQUIT {
				return work.end()
			}
			if text, err = configuration(file); err != nil {
				say("refused", err)
				continue
			}
			if err := work.end(); err != nil {
				return err
			}
			if work, err = startWorker(); err != nil {
				return err
			}
			say("reloaded with", answer(text))
		}
	}
}

// configuration reads a file and refuses one that says "nonsense".
func configuration(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if strings.Contains(string(text), "nonsense") {
		return "", errors.New(`unknown directive "nonsense"`)
	}
	return string(text), nil
}

// answer is what the configuration lets the server say: the text in quotes.
func answer(text string) string {
	_, rest, _ := strings.Cut(text, `"`)
	said, _, _ := strings.Cut(rest, `\n"`)
	return said
}

// workerProcess is a child that lives until its input ends.
type workerProcess struct {
	command *exec.Cmd
	input   io.Closer
}

func startWorker() (*workerProcess, error) {
	command := exec.Command("/proc/self/exe")
	command.Args = []string{"worker"}
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &workerProcess{command, input}, command.Start()
}

func (w *workerProcess) end() error {
	return errors.Join(w.input.Close(), w.command.Wait())
}

func worker([]string) error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
