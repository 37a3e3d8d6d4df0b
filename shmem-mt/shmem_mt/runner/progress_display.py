"""What a person sees while a run goes on: a progress bar with the time left and a table of the latest medians."""

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from shmem_mt import units
from shmem_mt.runner.points import describe

ROWS = 14


class Display:
    """Use as a context manager. On anything but a terminal it prints one line a program start instead."""

    def __init__(self, labels, total_s):
        self._labels = labels
        self._console = Console(stderr=True)
        self._rows = {}
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:3.0f} %"),
            TextColumn("{task.fields[left]} left"),
            console=self._console,
            expand=True,
        )
        self._task = self._progress.add_task("starting", total=max(total_s, 1e-9), left=units.duration(total_s))
        self._live = Live(self._view(), console=self._console, refresh_per_second=1, transient=True)

    def __enter__(self):
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *exception):
        if self._console.is_terminal:
            self._live.stop()

    def start(self, text, left_s):
        """A program start begins."""
        self._progress.update(self._task, description=text, left=units.duration(left_s))
        if not self._console.is_terminal:
            self._console.print(f"{units.duration(left_s)} left: {text}", highlight=False, soft_wrap=True)
        self._refresh()

    def say(self, text):
        """Something goes on that has no time of its own, such as compiling."""
        self._progress.update(self._task, description=text)
        if not self._console.is_terminal:
            self.note(text)
        self._refresh()

    def point(self, result):
        """A result came or changed."""
        row = describe(result["benchmark"], result["params"]) + (
            "" if result["metric"] in ("rate", "consumed_rate", "bandwidth", "latency") else f", {result['metric']}"
        )
        cells = self._rows.pop(row, {})
        cells[result["label"]] = result
        self._rows[row] = cells
        self._refresh()

    def finish(self, elapsed_s, left_s):
        """A program start has ended, so long after the run began."""
        total_s = max(elapsed_s + left_s, 1e-9)
        self._progress.update(self._task, completed=elapsed_s, total=total_s, left=units.duration(left_s))
        self._refresh()

    def note(self, text):
        """Something that stays on the screen."""
        self._console.print(text, highlight=False, soft_wrap=True, markup=False)

    def _refresh(self):
        if self._console.is_terminal:
            self._live.update(self._view())

    def _view(self):
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("latest medians", overflow="ellipsis", no_wrap=True)
        for label in self._labels:
            table.add_column(label, justify="right", no_wrap=True)
        for row, cells in list(self._rows.items())[-ROWS:]:
            table.add_row(row, *[self._cell(cells.get(label)) for label in self._labels])
        return Group(table, self._progress)

    @staticmethod
    def _cell(result):
        if result is None:
            return ""
        text = units.quantity(result["median"], result["unit"])
        return f"[bold red]{text} INVALID[/]" if result["valid"] is False else text
