package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal makes a pair of a terminal and the one who reads what it shows.
func terminal(t *testing.T) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return screen, program
}

// TestListing: a terminal sees how far a long list is; a file sees nothing, and neither
// sees anything of a short one.
func TestListing(t *testing.T) {
	t.Parallel()
	screen, program := terminal(t)
	for _, pages := range []int{1, 3} {
		l := newListing(program)
		for i := range pages {
			l.page(fmt.Sprintf("app-%d", pages), (i+1)*1000)
		}
		l.end()
	}
	const want = "\r\x1b[Kapp-3: 2000 tags so far\r\x1b[Kapp-3: 3000 tags so far\r\x1b[K"
	shown := make([]byte, len(want)) // it arrives in parts
	if _, err := io.ReadFull(screen, shown); err != nil {
		t.Fatal(err)
	}
	if string(shown) != want {
		t.Errorf("the terminal showed %q, want %q", shown, want)
	}

	var file bytes.Buffer
	l := newListing(&file)
	l.page("app", 1000)
	l.page("app", 2000)
	l.end()
	if file.Len() > 0 {
		t.Errorf("a file got %q", file.String())
	}
}
