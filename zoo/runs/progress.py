"""Logs of a run: progress.csv and TensorBoard."""

from pathlib import Path

from stable_baselines3.common.logger import CSVOutputFormat, KVWriter, Logger, TensorBoardOutputFormat

from sb3_fair.common.run_folder import RunFolder


class ContinuedCSV(CSVOutputFormat):
    """SB3's CSV log, in a file that begins with rows already known."""

    def __init__(self, filename: str, rows: str = "") -> None:
        super().__init__(filename)
        self.file.write(rows)
        self.file.flush()  # the next checkpoint reads it
        self.keys = rows.splitlines()[0].split(",") if rows else []


def run_logger(run: RunFolder, tensorboard: bool = False, rows: str = "", done: int = 0) -> Logger:
    """SB3's logger for a run: ``progress.csv``, and event files of TensorBoard in the same folder.

    :param rows: text of ``progress.csv`` up to the checkpoint that the run goes on from
    :param done: steps at that checkpoint; TensorBoard forgets what earlier processes logged after it
    """
    outputs: list[KVWriter] = [ContinuedCSV(str(run.path / "progress.csv"), rows)]
    if tensorboard:
        outputs.append(_tensorboard(run.path, done))
    return Logger(str(run.path), outputs)


def _tensorboard(folder: Path, done: int) -> TensorBoardOutputFormat:
    resumed = any(folder.glob("events.out.*"))
    output = TensorBoardOutputFormat(str(folder))
    if resumed:
        from torch.utils.tensorboard import SummaryWriter  # slow to import

        output.writer.close()
        output.writer = SummaryWriter(str(folder), purge_step=done + 1)
    return output
