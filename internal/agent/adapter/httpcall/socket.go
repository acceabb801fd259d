package httpcall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// SilentError is a line that was sent on a socket and not answered in time.
type SilentError struct{ Timeout time.Duration }

// Error states that the line was sent.
func (e *SilentError) Error() string {
	return fmt.Sprintf("sent, not answered within %s", e.Timeout)
}

// Ask sends one line to a unix socket and returns the answer until the other side closes.
// HAProxy's master and several other programs accept queries like this. Errors show only the
// line's first word: the rest may be secret.
func Ask(ctx context.Context, socket, line string, timeout time.Duration) (string, error) {
	answer, err := ask(ctx, socket, line, timeout)
	if err != nil {
		return "", fmt.Errorf("send %s to the socket %s: %w", firstWord(line), socket, noAnswer(err))
	}
	return answer, nil
}

func firstWord(line string) string {
	words := strings.Fields(line)
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return words[0] + " …"
}

func ask(ctx context.Context, socket, line string, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		return "", err
	}
	// HAProxy's master waits for the next line until the writing side is closed.
	if half, ok := conn.(*net.UnixConn); ok {
		if err := half.CloseWrite(); err != nil {
			return "", err
		}
	}
	answer, err := io.ReadAll(io.LimitReader(conn, bodyLimit+1))
	if late, isNet := errors.AsType[net.Error](err); isNet && late.Timeout() {
		return "", &SilentError{Timeout: timeout}
	}
	if err == nil && len(answer) > bodyLimit {
		err = fmt.Errorf("the answer is larger than %d MiB", bodyLimit>>20)
	}
	return string(answer), err
}
